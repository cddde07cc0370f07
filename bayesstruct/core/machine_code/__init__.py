"""Machine code on disk: where it is kept, how it finds what it calls, and who compiles it."""
