"""How long the event loop is held by the largest legal input of each route and each loop."""
