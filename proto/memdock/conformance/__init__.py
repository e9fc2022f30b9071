"""The conformance suite: holds any server of the protocol to what it promises, from outside (`memdock-conformance`)."""
