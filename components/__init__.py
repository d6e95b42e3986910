"""The steps of the pipeline; `core` is what two or more of them share."""
