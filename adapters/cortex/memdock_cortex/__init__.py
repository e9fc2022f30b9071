"""cortex, the agentic memory of Prem Research, as a memory system of the protocol."""
