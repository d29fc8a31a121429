"""The project's own comparison, for outputs where a few elements may stray."""


def assert_close_outliers(actual, expected, *, atol=0.05, rtol=0.05, max_outliers=5):
    """At most `max_outliers` elements outside the tolerance, and none outside twice the tolerance."""
    actual, expected = actual.cpu().float(), expected.cpu().float()
    assert actual.shape == expected.shape, f"shapes differ: {tuple(actual.shape)} and {tuple(expected.shape)}"
    difference = (actual - expected).abs()
    allowed = atol + rtol * expected.abs()
    outside = ~(difference <= allowed)
    count = int(outside.sum())
    far = int((~(difference <= 2 * allowed)).sum())
    worst = float(difference.nan_to_num(nan=float("inf")).max()) if difference.numel() else 0.0
    assert count <= max_outliers and not far, (
        f"{count} elements exceed atol={atol} rtol={rtol} of {difference.numel()}, {far} exceed twice that; "
        f"greatest absolute difference {worst}"
    )
