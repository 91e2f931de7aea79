"""What is evaluated: environment, agent policy, nominal disturbance, failure event."""
