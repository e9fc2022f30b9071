"""The one door through which memory systems reach models: what it lets through it counts.

`app.py` is the HTTP face, `meter.py` one call's way, `upstream.py` the endpoint, `store.py` what is kept.
"""
