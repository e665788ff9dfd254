"""The only place that knows requests: authentication, limits, JSON, routes."""
