"""Every speed and accuracy target of the project, measured: one module a subject."""
