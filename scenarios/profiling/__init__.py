"""Fleet-wide profiles of runs and of one's own files: asked, compared, judged."""
