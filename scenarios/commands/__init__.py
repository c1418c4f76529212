"""The commands of `wsc`, a file each, with their guard."""
