"""Networks that hand back every scale, the projector, and what they are made of.

Methods build these; nothing here knows a loss, a run or a file.
"""
