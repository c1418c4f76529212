"""Fleet-wide profiles (Ren et al. 2010): kept, asked and understood."""
