"""The pipeline: its graph, the profiles, and the `deepcoder` command."""
