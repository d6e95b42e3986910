"""What runs on the far side of the wall: the zygote and the children that execute candidates.

Only the standard library is used here, and nothing of this package's parent is imported: the zygote is
exec'ed with this folder alone, so no expected output can be in its address space.
"""
