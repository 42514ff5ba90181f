"""From "this graph, this method" to a trained run: settings, plan, loop, folder, scores.

`fit` trains, `folder` keeps what came out on disk, `scoring` judges it. The application, searches
and benchmarks call these; nothing here prints.
"""
