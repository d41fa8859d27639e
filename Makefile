.PHONY: services-up services-down

# The engine, its test images and PostgreSQL, in a network namespace of their own. Needs root.
services-up:
	tests/services/up
	tests/services/echo-image

services-down:
	tests/services/down
