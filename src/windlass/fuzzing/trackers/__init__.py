"""Issue trackers: where findings are filed, and the rules for what is filed how."""
