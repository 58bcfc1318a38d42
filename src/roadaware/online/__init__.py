"""The same models and linker on a stream: sources of frames, latency, and events as they happen."""
