"""T7: layers that change, several heads, attention that follows the state."""
