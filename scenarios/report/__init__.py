"""One page about a run, or about a folder of results, that can be handed on."""
