"""How a summary gets built: keys, plan, scheduler, events, serving, explanations."""
