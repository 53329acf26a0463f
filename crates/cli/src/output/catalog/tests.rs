//! The catalogue in each format, as its readers see it.

use domesday_columns::Example;
use domesday_model::{Category, DatasourceId, JobId, Level, MasterJobId, Sensitivity, TableKind};
use serde_json::Value;

use super::*;

fn source() -> CatalogSource {
    CatalogSource {
        datasource: DatasourceId(1),
        name: "shop-db".into(),
        kind: "postgres".into(),
        job: JobId(3),
        master_job: MasterJobId([1; 16]),
        as_of_ms: 1_772_323_199_000,
    }
}

fn shape() -> TableShape {
    let column = |name: &str, type_name: &str| ColumnShape {
        name: name.into(),
        type_name: type_name.into(),
        comment: None,
    };
    TableShape {
        kind: TableKind::View,
        columns: vec![
            column("id", "bigint"),
            column("=e\u{1b}[2Jmail", "text"),
            column("notes", "character varying(2000)"),
        ],
        primary_key: vec![0],
        row_estimate: Some(1_200_000),
        comment: Some("all of them".into()),
    }
}

fn label(kind: LabelKind, rule: &str, matched: u64) -> ColumnLabel {
    ColumnLabel {
        kind,
        rule: rule.into(),
        category: Category::Personal,
        sensitivity: Sensitivity::Moderate,
        regulations: vec!["GDPR".parse().unwrap(), "CCPA".parse().unwrap()],
        level: Level::High,
        matched,
        sampled: 1_024,
        prevalence: matched as f64 / 1_024.0,
        interval: (0.97, 0.998_76),
        cells: matched,
        value_evidence: vec!["they have a form of their own".into()],
        other_evidence: vec!["the name says so".into()],
        example: Some(Example { row: "42".into(), preview: "j***@e***.com".into() }),
    }
}

fn verdicts() -> Vec<ColumnVerdict> {
    let verdict = |labels: Vec<ColumnLabel>, is_free_text| ColumnVerdict {
        labels,
        is_free_text,
        nulls: 5,
        values: 9_995,
        distinct: 9_000,
    };
    vec![
        verdict(Vec::new(), false),
        verdict(vec![label(LabelKind::Column, "email-address", 1_005)], false),
        verdict(
            vec![label(LabelKind::Sparse, "payment-card", 2), label(LabelKind::Occurs, "email-address", 12)],
            true,
        ),
    ]
}

/// The whole catalogue of one table, its columns without labels included or not.
fn written(format: CatalogFormat, all: bool) -> String {
    let (source, shape, verdicts) = (source(), shape(), verdicts());
    let place = TablePlace {
        database: Some("shop".into()),
        schema: Some("pub\u{202e}lic".into()),
        table: "customers".into(),
    };
    let columns = shape.columns.iter().zip(&verdicts).enumerate().map(|(index, (shape, verdict))| {
        CatalogColumn { index, shape, verdict, labels: verdict.labels.iter().collect() }
    });
    let columns = columns.filter(|column| all || !column.labels.is_empty()).collect();
    let table = CatalogTable {
        source: &source,
        place: &place,
        shape: &shape,
        rows: 10_000,
        is_sample: true,
        columns,
    };
    let mut out = Vec::new();
    let style = Style { color: false, width: Some(140) };
    let mut writer = CatalogWriter::begin(&mut out, format, style).unwrap();
    writer.table(&table).unwrap();
    assert!(writer.end().unwrap());
    String::from_utf8(out).unwrap()
}

#[test]
fn the_table_has_a_heading_and_a_line_per_label() {
    let shown = written(CatalogFormat::Table, true);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines,
        [
            "shop-db  shop / pub\\u{202e}lic / customers  10,000 of about 1,200,000 rows sampled",
            "  id             bigint",
            "  =e\\x1b[2Jmail  text                     email-address  moderate  high  \
             98.1 % (97.0-99.9) of 1,024  row 42  j***@e***.com",
            "  notes          character varying(2000)  payment-card   moderate  high  \
             sparse: 2 of 1,024           row 42  j***@e***.com",
            "                                          email-address  moderate  high  \
             occurs in 12 of 1,024        row 42  j***@e***.com",
        ]
    );
    assert!(!written(CatalogFormat::Table, false).contains("bigint"));
}

#[test]
fn json_has_all_of_it() {
    let all: Value = serde_json::from_str(&written(CatalogFormat::Json, true)).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 3);
    let column = &all[1];
    let of = |field: &str| &column[field];
    assert_eq!(
        (of("datasource"), of("kind"), of("as_of")),
        (&"shop-db".into(), &"postgres".into(), &"2026-02-28T23:59:59Z".into())
    );
    assert_eq!((of("schema"), of("column")), (&"pub\u{202e}lic".into(), &"=e\u{1b}[2Jmail".into()));
    assert_eq!((of("table_kind"), of("position"), of("rows")), (&"view".into(), &2.into(), &10_000.into()));
    assert_eq!((&all[0]["is_primary_key"], of("is_primary_key")), (&true.into(), &false.into()));
    let label = &column["labels"][0];
    assert_eq!((&label["label"], &label["kind"]), (&"email-address".into(), &"column".into()));
    assert_eq!(label["interval"], serde_json::json!([0.97, 0.9988]));
    assert_eq!((&label["prevalence"], &label["sampled"]), (&0.9814.into(), &1_024.into()));
    assert_eq!(label["regulations"], serde_json::json!(["GDPR", "CCPA"]));
    assert_eq!(label["example"], serde_json::json!({ "row": "42", "preview": "j***@e***.com" }));
    assert_eq!(all[2]["labels"].as_array().unwrap().len(), 2);
    let mut nothing = Vec::new();
    let writer = CatalogWriter::begin(&mut nothing, CatalogFormat::Json, Style::default()).unwrap();
    assert!(!writer.end().unwrap());
    assert_eq!(serde_json::from_slice::<Value>(&nothing).unwrap(), serde_json::json!([]));
}

#[test]
fn csv_has_a_row_per_label_and_no_formula() {
    let text = written(CatalogFormat::Csv, true);
    let rows: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(rows.len(), 1 + 1 + 1 + 2);
    assert!(rows[0].starts_with("datasource,database,schema,table,column,type,label,"), "{}", rows[0]);
    assert!(rows[1].starts_with("shop-db,shop,pub\\u{202e}lic,customers,id,bigint,,,"), "{}", rows[1]);
    assert!(rows[2].contains(",'=e\\x1b[2Jmail,text,email-address,column,"), "{}", rows[2]);
    assert!(rows[2].contains(",\"GDPR, CCPA\",high,0.9814,0.97,0.9988,1005,1024,"), "{}", rows[2]);
    assert!(rows[4].contains(",email-address,occurs,"), "{}", rows[4]);
}
