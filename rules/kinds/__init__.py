"""The rule kinds: how a package expands to actions, and how an action is rendered and resolved."""
