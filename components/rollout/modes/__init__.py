"""The trajectory modes, each a page; components/rollout/README.md says how to write another."""
