"""Compare clients of LLM servers on one server."""
