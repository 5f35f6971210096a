"""The reference experiment: scenarios of edits over a scratch copy, incremental against full builds, audited."""
