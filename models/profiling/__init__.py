"""What a profiler can see: programs, their functions, images and call paths."""
