"""Networks that hand back every scale, the projector, and what they are made and trained with.

Methods build these; nothing here knows a loss, a run or a file.
"""
