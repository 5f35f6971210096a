"""What a summary is: declarations, documents and evidence, claims, prompts, rules, and the action graph."""
