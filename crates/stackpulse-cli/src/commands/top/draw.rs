//! `top` on the screen.

use super::view::{Order, View};
use crate::render::{elide, percent, plural, printable};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line as Text;
use ratatui::widgets::{Cell, Row, Table};

/// From this share on a row is red, and from the second green.
const HOT: f64 = 5.0;
const WARM: f64 = 0.5;
/// Columns that a share takes, and a module's name.
const SHARE: u16 = 8;
const MODULE: u16 = 20;
/// Narrower screens have no column of modules, and only one share.
const MODULES_FROM: u16 = 60;
const TWO_SHARES_FROM: u16 = 40;

pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let [head, where_we_are, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let width = usize::from(frame.area().width);
    let state = match (view.is_frozen(), view.facts.has_ended) {
        (true, _) => "  frozen",
        (false, true) => "  ended",
        (false, false) => "",
    };
    let told = format!(
        "{}  {}  {}/s  {} lost{state}",
        printable(&view.name),
        plural(view.samples(), "sample"),
        view.rate,
        view.facts.lost
    );
    frame.render_widget(Text::styled(elide(&told, width), bold()), head);
    let chain: Vec<String> =
        view.chain.iter().map(|function| printable(&function.label())).collect();
    let path =
        if chain.is_empty() { String::new() } else { format!("callers of {}", chain.join(" < ")) };
    frame.render_widget(Text::from(elide(&path, width)), where_we_are);
    draw_table(frame, view, body);
    let keys = if view.is_searching || !view.search.is_empty() {
        format!("/{}", printable(&view.search))
    } else {
        "q quit  s self  t total  n name  / search  space freeze  enter callers  esc back"
            .to_owned()
    };
    frame.render_widget(Text::from(elide(&keys, width)), foot);
}

fn draw_table(frame: &mut Frame<'_>, view: &mut View, area: Rect) {
    let module_width = if area.width < MODULES_FROM { 0 } else { MODULE };
    let total_width = if area.width < TWO_SHARES_FROM { 0 } else { SHARE };
    let gaps = 1 + u16::from(module_width > 0) + u16::from(total_width > 0);
    let name_width = area.width.saturating_sub(SHARE + total_width + module_width + gaps);
    let widths = [SHARE, total_width, name_width, module_width];
    // A column without a width would still take the gap before it.
    let row = |cells: [Cell<'static>; 4]| {
        Row::new(
            cells.into_iter().zip(widths).filter(|&(_, width)| width > 0).map(|(cell, _)| cell),
        )
    };
    let samples = view.samples();
    let rows = view.lines.iter().map(|line| {
        let own = percent(line.count.own, samples);
        let text = |text: &str, width| Cell::from(elide(&printable(text), usize::from(width)));
        row([
            Cell::from(format!("{own:7.2}%")).style(style_of(own, view.is_coloured)),
            Cell::from(format!("{:7.2}%", percent(line.count.total, samples))),
            text(&line.function.label(), name_width),
            text(&line.function.module, module_width),
        ])
    });
    let mark = |order: Order, name: &str| {
        if view.order == order { format!("{name}*") } else { name.to_owned() }
    };
    let head = row([
        Cell::from(format!("{:>8}", mark(Order::Own, "self"))),
        Cell::from(format!("{:>8}", mark(Order::Total, "total"))),
        Cell::from(mark(Order::Name, "function")),
        Cell::from("module"),
    ]);
    let shown = widths.into_iter().filter(|&width| width > 0).map(Constraint::Length);
    let table = Table::new(rows, shown)
        .header(head.style(bold()))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut view.table);
}

fn style_of(share: f64, is_coloured: bool) -> Style {
    match share {
        HOT.. if is_coloured => Style::new().fg(Color::Red),
        WARM.. if is_coloured => Style::new().fg(Color::Green),
        _ => Style::new(),
    }
}

fn bold() -> Style {
    // NO_COLOR asks for no colours; emphasis is none.
    Style::new().add_modifier(Modifier::BOLD)
}
