"""The paper's tables, figures and proposition, ours beside the paper's.

`artefacts` says which trainings each of them needs, `runner` trains and records what is missing,
`render` shows the records. `muxgcl reproduce` and the scripts that write our documents call these.
"""
