// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means, quantiles and the like. Of no values there are none.

/// The mean.
pub(crate) fn mean(list: &[f64]) -> Option<f64> {
    (!list.is_empty()).then(|| list.iter().sum::<f64>() / list.len() as f64)
}

/// The median.
pub(crate) fn median(list: &[f64]) -> Option<f64> {
    quantile(list, 0.5)
}

/// The least.
pub(crate) fn min(list: &[f64]) -> Option<f64> {
    list.iter().copied().min_by(f64::total_cmp)
}

/// The greatest.
pub(crate) fn max(list: &[f64]) -> Option<f64> {
    list.iter().copied().max_by(f64::total_cmp)
}

/// The greatest less the least.
pub(crate) fn spread(list: &[f64]) -> Option<f64> {
    Some(max(list)? - min(list)?)
}

/// The variance of the values as they are.
pub(crate) fn variance(list: &[f64]) -> Option<f64> {
    let mean = mean(list)?;
    Some(list.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / list.len() as f64)
}

/// The value below which the part `p` lies: between neighbours in order, linearly.
pub(crate) fn quantile(list: &[f64], p: f64) -> Option<f64> {
    let mut sorted = list.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, p)
}

/// The same of a list in order.
pub(crate) fn quantile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = place as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// Jain's index of fairness (Jain, Chiu and Hawe, 1984).
pub(crate) fn jain(list: &[f64]) -> Option<f64> {
    let (sum, squares) = list.iter().fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    (squares > 0.0).then(|| sum * sum / (list.len() as f64 * squares))
}

/// The slope of the straight line with the least squares.
pub(crate) fn slope(xs: &[f64], ys: &[f64]) -> Option<f64> {
    let (x, y) = (mean(xs)?, mean(ys)?);
    let (over, under) = xs
        .iter()
        .zip(ys)
        .fold((0.0, 0.0), |(over, under), (a, b)| (over + (a - x) * (b - y), under + (a - x) * (a - x)));
    (under > 0.0).then(|| over / under)
}
