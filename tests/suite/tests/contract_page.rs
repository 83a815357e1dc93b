//! `docs/authors/contract.md`: the contract as a page to look things up in, written from `wit/v0.1`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt::Write as _;
use std::fs;

use cloudwit_suite::root;
use wit_parser::{
    Docs, Function, FunctionKind, Handle, Interface, PackageId, Resolve, Type, TypeDef, TypeDefKind, TypeId, WorldItem,
};

/// The interfaces in the order of the page, by what they are for.
const PARTS: [(&str, &[&str]); 3] = [
    (
        "What a provider exports",
        &[
            "info",
            "instances",
            "load-balancers",
            "routes",
            "volumes",
            "volume-expansion",
            "volume-listing",
            "volume-snapshots",
            "volume-modification",
            "volume-capacity",
            "volume-labels",
            "tagging",
            "clusters",
            "dns",
            "location",
            "ssh-keys",
        ],
    ),
    (
        "What a provider may use",
        &["call", "config", "keys", "state", "log", "events", "cluster"],
    ),
    ("Types that they share", &["common", "services", "volume-types"]),
];

const BEGIN: &str = "# The contract

Every interface, function and type of the package `cloudwit:provider@0.1.0`, written from [`wit/v0.1`](../../wit/v0.1) by a test. [`wit/README.md`](../../wit/README.md)
says how it evolves; the [guide](guide.md) says how it is used from Rust. Beside these a provider uses WASI 0.2: outgoing HTTP, clocks and random numbers.
";

#[test]
fn page_of_the_contract_is_up_to_date() {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root().join("wit/v0.1")).unwrap();
    let page = page(&resolve, package);
    let file = root().join("docs/authors/contract.md");
    if std::env::var_os("CLOUDWIT_UPDATE").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let shipped = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        shipped == page,
        "{} is old; CLOUDWIT_UPDATE=1 cargo test -p cloudwit-suite --test contract_page writes it anew",
        file.display()
    );
}

fn page(resolve: &Resolve, package: PackageId) -> String {
    let package = &resolve.packages[package];
    let interface = |name: &str| &resolve.interfaces[package.interfaces[name]];
    let mut shown: Vec<&str> = PARTS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut there: Vec<&str> = package.interfaces.keys().map(String::as_str).collect();
    shown.sort_unstable();
    there.sort_unstable();
    assert_eq!(shown, there, "an interface has no part of the page");

    let mut page = BEGIN.to_owned();
    for (title, names) in PARTS {
        let links = names.iter().map(|name| format!("[{name}](#{name})"));
        writeln!(page, "\n{title}: {}.", links.collect::<Vec<_>>().join(", ")).unwrap();
    }
    page.push_str("\nWorlds: [worlds](#worlds).\n");
    for (_, names) in PARTS {
        for name in names {
            write_interface(&mut page, resolve, name, interface(name));
        }
    }
    page.push_str("\n## worlds\n\n| world | exports | what it is |\n| ----- | ------- | ---------- |\n");
    for (name, id) in &package.worlds {
        let world = &resolve.worlds[*id];
        let exports = world.exports.iter().filter_map(|(_, item)| match item {
            WorldItem::Interface { id, .. } => resolve.interfaces[*id].name.clone(),
            _ => None,
        });
        let exports = exports.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        writeln!(page, "| `{name}` | {exports} | {} |", cell(&world.docs)).unwrap();
    }
    page
}

fn write_interface(page: &mut String, resolve: &Resolve, name: &str, interface: &Interface) {
    writeln!(page, "\n## {name}\n{}", paragraphs(&interface.docs)).unwrap();
    let free = |function: &&Function| matches!(function.kind, FunctionKind::Freestanding);
    for function in interface.functions.values().filter(free) {
        write_function(page, resolve, name, function);
    }
    for (type_name, id) in &interface.types {
        let definition = &resolve.types[*id];
        // What is only used here is shown where it is defined.
        if !matches!(definition.kind, TypeDefKind::Type(Type::Id(_))) {
            write_type(page, resolve, &format!("{name}.{type_name}"), definition);
        }
        let is_of_it = |function: &&Function| function.kind.resource() == Some(*id);
        for function in interface.functions.values().filter(is_of_it) {
            write_function(page, resolve, &format!("{name}.{type_name}"), function);
        }
    }
}

fn write_function(page: &mut String, resolve: &Resolve, of: &str, function: &Function) {
    let is_self = |(at, name): (usize, &str)| at == 0 && name == "self";
    let params = function.params.iter().enumerate();
    let params = params
        .filter(|(at, param)| !is_self((*at, &param.name)))
        .map(|(_, param)| format!("{}: {}", param.name, type_text(resolve, &param.ty)));
    let params = params.collect::<Vec<_>>().join(", ");
    let result = function.result.as_ref();
    let result = result.map_or(String::new(), |result| format!(" -> {}", type_text(resolve, result)));
    let name = function.item_name();
    writeln!(
        page,
        "\n### {of}.{name}\n\n```wit\n{name}: func({params}){result}\n```\n{}",
        paragraphs(&function.docs)
    )
    .unwrap();
}

fn write_type(page: &mut String, resolve: &Resolve, name: &str, definition: &TypeDef) {
    let kind = definition.kind.as_str();
    let docs = paragraphs(&definition.docs);
    writeln!(page, "\n### {name}\n\n`{kind}`. {}", docs.trim_start()).unwrap();
    let optional = |ty: &Option<Type>| ty.as_ref().map_or(String::new(), |ty| code(&type_text(resolve, ty)));
    let (first, rows): (&str, Vec<(&str, String, &Docs)>) = match &definition.kind {
        TypeDefKind::Record(record) => {
            let row = |field: &'_ wit_parser::Field| code(&type_text(resolve, &field.ty));
            let fields = record.fields.iter();
            (
                "field",
                fields
                    .map(|field| (field.name.as_str(), row(field), &field.docs))
                    .collect(),
            )
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter();
            (
                "case",
                cases
                    .map(|case| (case.name.as_str(), optional(&case.ty), &case.docs))
                    .collect(),
            )
        }
        TypeDefKind::Enum(cases) => {
            let cases = cases.cases.iter();
            (
                "case",
                cases
                    .map(|case| (case.name.as_str(), String::new(), &case.docs))
                    .collect(),
            )
        }
        TypeDefKind::Resource => return,
        other => panic!("{name} is a {}, which the page does not show yet", other.as_str()),
    };
    writeln!(page, "\n| {first} | type | meaning |\n| --- | --- | --- |").unwrap();
    for (name, ty, docs) in rows {
        writeln!(page, "| `{name}` | {ty} | {} |", cell(docs)).unwrap();
    }
}

/// A type as WIT writes it.
fn type_text(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".into(),
        Type::U8 => "u8".into(),
        Type::U16 => "u16".into(),
        Type::U32 => "u32".into(),
        Type::U64 => "u64".into(),
        Type::S8 => "s8".into(),
        Type::S16 => "s16".into(),
        Type::S32 => "s32".into(),
        Type::S64 => "s64".into(),
        Type::F32 => "f32".into(),
        Type::F64 => "f64".into(),
        Type::Char => "char".into(),
        Type::String => "string".into(),
        Type::ErrorContext => "error-context".into(),
        Type::Id(id) => defined_text(resolve, *id),
    }
}

fn defined_text(resolve: &Resolve, id: TypeId) -> String {
    let definition = &resolve.types[id];
    if let Some(name) = &definition.name {
        return name.clone();
    }
    let text = |ty: &Type| type_text(resolve, ty);
    match &definition.kind {
        TypeDefKind::Option(ty) => format!("option<{}>", text(ty)),
        TypeDefKind::List(ty) => format!("list<{}>", text(ty)),
        TypeDefKind::Tuple(tuple) => format!("tuple<{}>", tuple.types.iter().map(text).collect::<Vec<_>>().join(", ")),
        TypeDefKind::Result(result) => match (&result.ok, &result.err) {
            (None, None) => "result".into(),
            (Some(ok), None) => format!("result<{}>", text(ok)),
            (ok, Some(err)) => format!("result<{}, {}>", ok.as_ref().map_or("_".into(), text), text(err)),
        },
        TypeDefKind::Handle(Handle::Own(id)) => defined_text(resolve, *id),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", defined_text(resolve, *id)),
        other => panic!("a {} without name, which the page does not show yet", other.as_str()),
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Documentation below a line: an empty line and the text; nothing where there is none.
fn paragraphs(docs: &Docs) -> String {
    let text = docs.contents.as_deref().unwrap_or_default().trim();
    if text.is_empty() {
        return String::new();
    }
    format!("\n{text}")
}

/// The same in one cell of a table.
fn cell(docs: &Docs) -> String {
    let text = docs.contents.as_deref().unwrap_or_default().trim();
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("<br>").replace('|', "\\|")
}
