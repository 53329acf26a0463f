//! The texts whose instructions are counted: like those that people have, and the same for ever.

use super::texts::unit::{Class, Piece, Unit};

/// Name, path and unit of each. What they say is made up.
pub fn all() -> Vec<(&'static str, &'static str, Unit)> {
    vec![
        ("source", "drivers/net/ring.c", source()),
        ("settings", "deploy/settings.yaml", settings()),
        ("digits", "export/orders.txt", Unit(vec![Piece::Varied(b"4111 1111 1111 1111; ".to_vec(), 1)])),
    ]
}

/// Source code, in which next to nothing is to be found.
fn source() -> Unit {
    let (name, number) = (Piece::Any(Class::Letters, 7), Piece::Any(Class::Digits, 3));
    let lines = [
        "\n/* Returns the number of entries that are left in the ring, or a negative error code. */\nstatic int ",
        "_count(struct device *dev, const char *buf, size_t len)\n{\n\tstruct ring_entry *entry = to_ring(dev, ",
        ");\n\tunsigned long flags;\n\n\tif (!entry || len > sizeof(entry->name) - 1)\n\t\treturn -EINVAL;\n\tspin_lock_irqsave(&",
        "->lock, flags);\n\tlist_for_each_entry(entry, &ring->head, node) {\n\t\tif (strncmp(entry->key, \"",
        "\", 8) == 0 && (entry->state & RING_BUSY) == 0x",
        ")\n\t\t\tcontinue;\n\t\tdev_dbg(dev, \"token %u of %lu bytes at %p\\n\", entry->id, len, ",
        ");\n\t}\n\tspin_unlock_irqrestore(&ring->lock, flags);\n\treturn sysfs_emit(buf, \"%d\\n\", ",
        ");\n}\n#define RING_SIZE_",
        " (1UL << 12)\nMODULE_AUTHOR(\"The ring authors\");\nstatic const u32 ring_table[] = { 0x00000001, 0x0000001f, ",
        " };\n",
    ];
    let mut pieces = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        pieces.push(Piece::text(line));
        pieces.push(if index % 3 == 2 { number.clone() } else { name.clone() });
    }
    Unit(pieces)
}

/// Settings and records, in which there is something to be found every other line.
fn settings() -> Unit {
    let any = |class, len| Piece::Any(class, len);
    let text = |text: &str| Piece::text(text);
    Unit(vec![
        text("database:\n  host: db.internal.example\n  user: shop\n  password: \""),
        any(Class::Base64, 16),
        text("\"\n  url: postgres://shop:"),
        any(Class::Letters, 12),
        text("@10.1.2.3:5432/shop\nmail:\n  from: "),
        any(Class::Letters, 6),
        text("@corp-mail.org\n  api_key: "),
        any(Class::Hex, 40),
        text("\naws:\n  access_key_id: "),
        Piece::Varied(b"AKIAQ3EGRT7XWZLPB5NM".to_vec(), 4),
        text("\n  region: eu-central-1\nreplicas: 3\nimage: registry.internal/shop@sha256:"),
        any(Class::Hex, 64),
        text("\ncustomers:\n  - name: Ann Bell\n    phone: +49 30 "),
        any(Class::Digits, 7),
        text("\n    card: "),
        Piece::Varied(b"4111 1111 1111 1111".to_vec(), 1),
        text("\n    born: 1987-03-21\n    note: sent to the harbour in the afternoon, paid in full\n"),
    ])
}
