"""A small Flask application with Windlass: `flask --app examples.flask_app.app run`."""
