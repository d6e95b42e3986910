"""Overrides of the micro profile for runs that test what is around the policy, not the policy."""

FEW_PROBLEMS = [
    "data.max_test_problems=2",
    "data.verify=false",
    "batch_size=4",
    "policy_update.ppo_mini_batch_size=4",
    "rollout.n=2",
    "evaluation.n=1",
    "evaluation.pass_k=[1]",
]
