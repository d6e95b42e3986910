"""What two or more steps share: configuration, schemas, the store, tracking. Imports no step."""
