"""The operational laws tried on this machine: a real server under load, beside what the kernel accounts for."""
