"""Pictures and pages of results.

The room draws what other rooms have computed: it builds no network and judges none.
"""
