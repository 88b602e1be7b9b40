use super::*;
use crate::comparison::recording_of;
use crate::{ColumnInput, SeriesRows};
use lowmark_record::Recording;

fn point(value: &str, columns: &[(&str, [u64; 2])]) -> Point {
    let recordings: Vec<(String, Vec<Recording>)> = columns
        .iter()
        .map(|(name, outs)| {
            let own = outs.map(|outs| {
                let counters = [("pswpout", outs), ("pgpgin", 7)];
                recording_of(
                    counters
                        .map(|(name, count)| (name.to_owned(), count))
                        .into(),
                )
            });
            ((*name).to_owned(), own.to_vec())
        })
        .collect();
    let columns: Vec<ColumnInput<'_>> = recordings
        .iter()
        .map(|(name, own)| ColumnInput {
            name: name.clone(),
            recordings: own.iter().collect(),
        })
        .collect();
    Point {
        values: vec![value.to_owned()],
        comparison: Comparison::new(&columns, SeriesRows::default()),
    }
}

fn sweep(points: Vec<Point>) -> Sweep {
    Sweep {
        axes: vec!["ram".to_owned()],
        points,
    }
}

#[test]
fn figures_are_columns_where_nothing_is_compared() {
    let sweep = sweep(vec![
        point("256M", &[("v3.6", [100, 120])]),
        point("512M", &[("v3.6", [10, 10])]),
    ]);
    let csv = sweep.csv();
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let at = header
        .iter()
        .position(|name| *name == "Swap Outs")
        .expect("a figure");
    let outs: Vec<&str> = lines
        .map(|line| line.split(',').nth(at).expect("a cell"))
        .collect();
    assert_eq!((header[0], outs), ("ram", vec!["110", "10"]));
    let markdown = sweep.markdown(&["swap-outs".to_owned()]).expect("a figure");
    assert_eq!(
        markdown,
        "| ram | Swap Outs (pages) |\n| --- | ---: |\n| 256M | 110 ±13% |\n| 512M | 10 ±0.0% |\n"
    );
    // What does not vary, or is neither good nor bad, is not shown unless it is asked for.
    let text = sweep.to_string();
    assert!(
        text.contains("Swap") && !text.contains("Elapsed") && !text.contains("Page Ins"),
        "{text}"
    );
    assert!(sweep.markdown(&["Page Ins".to_owned()]).is_ok());
    let error = sweep.markdown(&["Pages".to_owned()]).expect_err("none");
    assert!(
        error.contains("no figure is called Pages; the runs have User"),
        "{error}"
    );
}

#[test]
fn kernels_are_columns_where_they_are_compared() {
    let kernels = |outs: [u64; 2]| [("v3.6", [100, 120]), ("v3.14", outs)];
    let sweep = sweep(vec![
        point("0", &kernels([50, 60])),
        point("1", &kernels([110, 110])),
    ]);
    let outs = ["Swap Outs".to_owned()];
    assert_eq!(
        sweep.markdown(&outs).expect("a figure"),
        "**Swap Outs (pages)**\n\n| ram | v3.6 | v3.14 |\n| --- | ---: | ---: |\n\
         | 0 | 110 ±13% (0.00%) | 55 ±13% (50.00%)~ |\n| 1 | 110 ±13% (0.00%) | 110 ±0.0% (0.00%) |\n"
    );
    let csv = sweep.csv();
    assert!(csv.starts_with("ram,figure,v3.6,v3.14\n"), "{csv}");
    assert!(
        csv.contains("\n0,Swap Outs,110,55\n1,Swap Outs,110,110\n"),
        "{csv}"
    );
    let json = sweep.json();
    assert_eq!(json["axes"][0], "ram");
    assert_eq!(json["points"][1]["values"][0], "1");
    assert!(json["points"][1]["blocks"].is_array());
}

#[test]
fn cells_of_csv_are_quoted() {
    assert_eq!(quoted("v3.6,page_cluster=4"), "\"v3.6,page_cluster=4\"");
    assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    assert_eq!(quoted("plain"), "plain");
}

#[test]
fn a_figure_is_a_curve_along_the_parameter() {
    let kernels = |a, b| [("v3.6", a), ("v3.14", b)];
    let sweep = sweep(vec![
        point("256M", &kernels([100, 120], [50, 50])),
        point("512M", &kernels([10, 10], [50, 50])),
    ]);
    let section = sweep.section(&["swap-outs".to_owned()]).expect("a row");
    let [crate::plot::Plot::Curves(plot)] = section.plots.as_slice() else {
        panic!("{:?}", section.plots);
    };
    assert_eq!(
        (plot.axis.as_str(), plot.values.as_slice()),
        ("ram", &["256M".to_owned(), "512M".to_owned()][..])
    );
    let names: Vec<&str> = plot.series.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["v3.6", "v3.14"]);
    let [Some((mean, half)), Some(second)] = plot.series[0].points[..] else {
        panic!("{plot:?}");
    };
    // The standard deviation of 100 and 120.
    assert!(
        (mean - 110.0).abs() < 1e-9 && (half - 14.142).abs() < 0.001,
        "{half}"
    );
    assert_eq!(second, (10.0, 0.0));
    assert_eq!(
        section.answers,
        ["ram from 256M to 512M, 2 values: Swap Outs is shown."]
    );
}
