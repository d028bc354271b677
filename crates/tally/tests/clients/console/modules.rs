//! The console's own computations, in the browser that runs it: CSV, digests, histograms, numbers.

use super::Console;
use serde_json::{Value, json};

const CSV: &str = r#"(async () => {
    const { csv } = await import('/console/csv.js');
    const text = 'a,b\r\n1,"x,""y""\nz"\r\n\r\n2,c\n,\n3,"q"';
    const all = [];
    for (let size = 1; size <= text.length; size += 1) {
        const reader = csv();
        const rows = [];
        for (let at = 0; at < text.length; at += size) rows.push(...reader.push(text.slice(at, at + size)));
        all.push(JSON.stringify([...rows, ...reader.push('', true)]));
    }
    return [...new Set(all)];
})()"#;

const FORMULAS: &str = r#"(async () => {
    const { escaped, unescaped } = await import('/console/csv.js');
    const texts = ['=1', '+1', '-1', '@x', '\tx', "'=1", "'ann", 'ann', ''];
    return [texts.map(escaped), texts.every((text) => unescaped(escaped(text)) === text)];
})()"#;

const DIGESTS: &str = r#"(async () => {
    const { sha256 } = await import('/console/sha256.js');
    const digest = (text, size) => {
        const bytes = new TextEncoder().encode(text);
        const made = sha256();
        for (let at = 0; at < bytes.length; at += size) made.update(bytes.subarray(at, at + size));
        return made.hex();
    };
    return [
        digest('', 1),
        digest('abc', 2),
        digest('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq', 7),
        digest('a'.repeat(1000000), 4097),
    ];
})()"#;

const HISTOGRAMS: &str = r#"(async () => {
    const { parse, sum, histogram, between, quantile } = await import('/console/metrics.js');
    const text = '# HELP x y\nn_total{route="a\\"b,c",class="2xx"} 3\nn_total{route="d"} 4.5\n'
        + 's_bucket{le="2",k="v"} 9\ns_bucket{le="1",k="v"} 4\ns_bucket{le="+Inf",k="v"} 10\ns_bucket{le="1",k="w"} 7\n';
    const families = parse(text);
    const now = histogram(families, 's', (labels) => labels.k === 'v');
    const since = between([[1, 4], [2, 4], [Infinity, 4]], now);
    return [
        sum(families, 'n_total'), sum(families, 'n_total', (labels) => labels.route === 'a"b,c'),
        now.map(([bound, count]) => [String(bound), count]), since.map(([, count]) => count),
        quantile(since, 0.5), String(quantile(since, 0.99)), quantile([[1, 0], [Infinity, 0]], 0.5),
    ];
})()"#;

/// The highest value of an axis: shares end at the whole.
const AXES: &str = r#"(async () => {
    const { chart } = await import('/console/chart.js');
    const { brief, percent } = await import('/console/format.js');
    const top = (shown) => {
        const made = chart('x', [{ of: (point) => point.value }], shown, () => []);
        made.update([{ at: 1, value: 0.99 }, { at: 2, value: 1 }]);
        return made.element.querySelector('.top-value').textContent;
    };
    return [top(percent), top(brief)];
})()"#;

/// The histograms of routes that have counts; and a slow minute, which is a warning.
const ROUTES: &str = r#"(async () => {
    const { parse, histograms } = await import('/console/metrics.js');
    const { warnings } = await import('/console/warnings.js');
    const text = 's_bucket{route="/a",le="1"} 4\ns_bucket{route="/a",le="+Inf"} 5\ns_count{route="/a"} 5\n'
        + 's_bucket{route="/b",le="1"} 0\ns_bucket{route="/b",le="+Inf"} 0\ns_count{route="/b"} 0\n';
    const routes = [...histograms(parse(text), 's', ({ route }) => route)].map(([name, counts]) => [name, counts.map(([, count]) => count)]);
    const reading = { status: { store: { gauges: {} } }, now: { refused: 0, faults: 0, cache: { hits: 0, misses: 0 } } };
    const of = (p99) => warnings(reading, { p99 }, true).map(([kind, title, , link]) => [kind, title, link]);
    return [routes, of(0.9), of(1.5), of(null)];
})()"#;

/// The sums of a period are of all payouts, however many pages they have. Those of some pages are what all come to at least.
const PAYOUTS: &str = r#"(async () => {
    const { payoutsOf, sums } = await import('/console/board_prizes.js');
    const { fetch } = window;
    const row = { paid: true, amount: '7', currency: 'KRW' };
    const first = { settled: false, items: Array(1000).fill(row), next_cursor: 'more' };
    const last = { settled: true, items: [row] };
    window.fetch = (path, options) => (path.includes('/prizes?') ? new Response(JSON.stringify(path.includes('cursor=more') ? last : first)) : fetch(path, options));
    try {
        const { items, settled } = await payoutsOf('goals', 'weekly:2026-11-16');
        const some = await payoutsOf('goals', 'weekly:2026-11-16', undefined, 1);
        const lines = (...given) => sums(...given).lines.map((line) => line.replace(/\s/g, ' '));
        return [items.length, settled, lines(items), lines(some.items, some.complete)];
    } finally {
        window.fetch = fetch;
    }
})()"#;

/// A message above an open dialog can be clicked, and stays when the dialog is closed. One from before the dialog is gone, or waits if it takes something back. It goes with
/// its page, unless it takes something back or is of the act that led to the next page.
const MESSAGES: &str = r#"(async () => {
    const { dialog, toast } = await import('/console/dialog.js');
    toast('ok', 'Before a dialog');
    const box = dialog('A dialog', () => []);
    toast('bad', 'A message');
    const made = document.querySelector('.toast');
    const { left, top, width, height } = made.getBoundingClientRect();
    const above = made.contains(document.elementFromPoint(left + width / 2, top + height / 2));
    const closed = new Promise((resolve) => box.addEventListener('close', resolve));
    box.close();
    await closed;
    const stays = made.parentElement.parentElement === document.body && made.textContent === 'A message';
    made.remove();
    toast('ok', 'To be undone', null, { label: 'Undo', run: () => {} });
    const shown = () => document.querySelector('.toast.undo').getClientRects().length > 0;
    const before = shown();
    const over = dialog('Another dialog', () => []);
    const under = shown();
    const gone = new Promise((resolve) => over.addEventListener('close', resolve));
    over.close();
    await gone;
    const after = shown();
    toast('ok', 'Of the page');
    const moved = new Promise((resolve) => window.addEventListener('hashchange', resolve, { once: true }));
    location.hash = '#/boards?of=messages';
    toast('ok', 'Of the next page');
    await moved;
    const kept = [...document.querySelectorAll('.toast')];
    kept.forEach((one) => one.remove());
    return [above, stays, [before, under, after], kept.map((one) => one.querySelector('.strong').textContent)];
})()"#;

/// A time in a zone may have its name, and a zone that the browser does not know is no error. A window of a board has a zone, and its
/// name is read on the clocks of it.
const TIMES: &str = r#"(async () => {
    const { periodName, when, zoned, zoneName } = await import('/console/format.js');
    const { zoneOf } = await import('/console/zones.js');
    const at = '2026-11-28T05:03:00Z';
    const rules = [{ name: 'weekly', time_zone: 'Asia/Seoul' }, { name: 'daily', time_zone: 'Europe/Paris' }];
    const windows = [zoneOf(rules, 'weekly'), zoneOf(rules, 'daily:2026-11-28'), zoneOf(rules, 'all_time') ?? null, zoneOf(rules.slice(1), 'all_time')];
    const names = ['weekly:2026-11-21T18:29', 'sprint:2026-11-23', 'all_time', 'x'].map((one) => periodName(one));
    return [names, when(at, 'Asia/Seoul'), zoned(at, 'Asia/Seoul'), zoned(at, 'Nowhere/Else').startsWith('2'), zoneName('Nowhere/Else') === zoneName(), when(null), windows];
})()"#;

/// What needs attention: a long list ends with a link to the whole one.
const NEEDS: &str = r#"(async () => {
    const { lineList } = await import('/console/overview.js');
    const found = [...Array(22).keys()].map((at) => ['info', `Cup ${at}`, 'Ready', '#/contests/cup']);
    const [first, whole] = [lineList(found, false), lineList(found, true)];
    const more = [...first.querySelectorAll('a')].at(-1);
    return [first.children.length, more.textContent, more.getAttribute('href'), whole.children.length, whole.textContent.includes('more')];
})()"#;

/// Whether a player is staff of a contest in which it has a score, for a caller that may not read the contests of a player.
const STAFF: &str = r#"(async () => {
    const { contestsOf } = await import('/console/player_contests.js');
    const fetch = window.fetch;
    const answers = { '/v1/contests/cup': { id: 'cup', title: 'Cup', state: 'running', staff: ['cleo'] } };
    const none = { items: [] };
    window.fetch = (path, options) => (answers[path] || path.startsWith('/v1/players/') ? Promise.resolve(new Response(JSON.stringify(answers[path] ?? none))) : fetch(path, options));
    try {
        const read = async (player) => (await contestsOf(player, ['contest:cup'])).found.get('cup').staff;
        return [await read('ann'), await read('cleo')];
    } finally {
        window.fetch = fetch;
    }
})()"#;

/// A list shows the newest answer, in whatever order answers come.
const LISTS: &str = r#"(async () => {
    const { list, table } = await import('/console/table.js');
    const answers = [];
    const view = table('x', [{ label: 'x', cell: ({ x }) => x }]);
    const all = list(view, () => new Promise((resolve) => answers.push(resolve)), () => 'nothing');
    const [older, newer] = [all.reload(), all.reload()];
    answers[1]({ items: [{ x: 'newer' }] });
    await newer;
    answers[0]({ items: [{ x: 'older' }] });
    await older;
    return [all.items().map(({ x }) => x), view.element.tBodies[0].textContent];
})()"#;

/// An act that could not be undone can be tried again.
const UNDO: &str = r#"(async () => {
    const { toast } = await import('/console/dialog.js');
    let undone = false;
    toast('ok', 'Done', null, { label: 'Undo', run: () => undone });
    const made = [...document.querySelectorAll('.toast')].at(-1);
    const press = async () => {
        made.querySelector('div button').click();
        await new Promise((resolve) => setTimeout(resolve));
        return made.isConnected;
    };
    const stays = await press();
    undone = true;
    return [stays, await press()];
})()"#;

/// The time of an act that can be undone stands still under a dialog, and begins again after it. One of an act inside a dialog is shown there.
const UNDO_UNDER_A_DIALOG: &str = r#"(async () => {
    const { dialog, toast } = await import('/console/dialog.js');
    const { setTimeout, clearTimeout } = window;
    const running = new Set();
    let last = 0;
    window.setTimeout = (run, wait) => {
        if (wait !== 30000) return setTimeout(run, wait);
        last -= 1;
        running.add(last);
        return last;
    };
    window.clearTimeout = (timer) => running.delete(timer) || clearTimeout(timer);
    try {
        const shown = () => [...document.querySelectorAll('.toast.undo')].filter((one) => one.getClientRects().length > 0).map((one) => one.querySelector('.strong').textContent);
        const seen = [];
        const see = () => seen.push([running.size, shown()]);
        const close = async (box) => {
            const closed = new Promise((resolve) => box.addEventListener('close', resolve));
            box.close();
            await closed;
            see();
        };
        const undo = { label: 'Undo', run: () => {} };
        toast('ok', 'Before', null, undo);
        const first = dialog('A dialog', () => []);
        see();
        toast('ok', 'Inside', null, undo);
        const second = dialog('Above it', () => []);
        see();
        await close(second);
        await close(first);
        ['One', 'Two', 'Three'].forEach((title) => toast('bad', title));
        see();
        document.querySelectorAll('.toast').forEach((one) => one.remove());
        return seen;
    } finally {
        Object.assign(window, { setTimeout, clearTimeout });
    }
})()"#;

/// A ban on two leaderboards whose undo fails on one of them: the second undo is of that one alone.
const UNDO_OF_BANS: &str = r#"(async () => {
    const { ban, place } = await import('/console/ban.js');
    const { fetch } = window;
    const asked = [];
    let fails = true;
    window.fetch = (path, options) => {
        if (options?.method !== 'POST') return fetch(path, options);
        const [, board, act] = path.match(/leaderboards\/(\w+)\/players\/ann\/(\w+)/);
        asked.push(`${act} ${board}`);
        if (act === 'restore' && board === 'b' && fails) return Promise.resolve(new Response('{"code":"store_unavailable","detail":"away"}', { status: 503 }));
        return Promise.resolve(new Response('{}'));
    };
    try {
        await ban('ann', [place('a', 'ann'), place('b', 'ann')], '', () => {});
        const made = document.querySelector('.toast.undo');
        const act = made.querySelector('div button');
        const press = async () => {
            const [before] = [asked.length, act.click()];
            while (act.disabled) await new Promise((resolve) => setTimeout(resolve, 5));
            return [asked.slice(before), made.isConnected];
        };
        const first = await press();
        fails = false;
        return [first, await press()];
    } finally {
        window.fetch = fetch;
        document.querySelectorAll('.toast').forEach((one) => one.remove());
    }
})()"#;

/// A search ends after ten pages without a row. Its list says so, and goes on by a button.
const SEARCHES: &str = r#"(async () => {
    const { get } = await import('/console/api.js');
    const { list, table } = await import('/console/table.js');
    const { fetch } = window;
    let count = 0;
    window.fetch = (path, options) => {
        if (!path.startsWith('/v1/contests')) return fetch(path, options);
        count += 1;
        return Promise.resolve(new Response(JSON.stringify({ items: [], next_cursor: count < 15 ? 'on' : null })));
    };
    try {
        const all = list(table('x', []), (cursor) => get('/v1/contests', { cursor }), () => 'none');
        await all.reload();
        const first = [count, all.element.textContent.includes('10 parts of the list were searched')];
        const more = all.element.querySelector('button');
        more.click();
        while (more.isConnected || all.element.querySelector('button')) await new Promise((resolve) => setTimeout(resolve, 5));
        return [first, count, all.element.textContent.includes('none')];
    } finally {
        window.fetch = fetch;
    }
})()"#;

/// The lists of a page ask for so many members at most, and for each once.
const MEMBERS: &str = r#"(async () => {
    const { withMembers } = await import('/console/board_prizes.js');
    const { fetch } = window;
    let count = 0;
    window.fetch = (path, options) => {
        if (!path.startsWith('/v1/members?')) return fetch(path, options);
        count += 1;
        return Promise.resolve(new Response('{"items":[]}'));
    };
    try {
        const asked = new Map();
        const rows = (from) => [...Array(40).keys()].map((at) => ({ code: 'no_member', player: `p${from + at}` }));
        const found = [await withMembers(rows(0), undefined, asked), await withMembers(rows(20), undefined, asked)];
        return [count, ...found.map((items) => items.filter(({ memberNow }) => memberNow === null).length)];
    } finally {
        window.fetch = fetch;
    }
})()"#;

/// The scores that went with a player, as the log has them.
const REMOVED: &str = r#"(async () => {
    const { removed } = await import('/console/acts.js');
    return ['arcade: all_time 9', 'arcade: all_time 9, weekly:2026-11-23 7, and 3 more', 'arcade: else'].map(removed);
})()"#;

const NUMBERS: &str = r#"(async () => {
    const { grouped, bytes, seconds, brief, percent } = await import('/console/format.js');
    return [grouped('-9223372036854775808'), grouped(1234.5), grouped(null), grouped('inf'), bytes(1536), bytes(12),
        seconds(0.00025), seconds(0.0125), seconds(93784), seconds(Infinity), brief(12345), brief(0.05), percent(0.9996)]
        .map((text) => text.replace(/\s/g, ' '));
})()"#;

#[test]
fn modules_compute_what_they_should() {
    let mut console = Console::empty();
    let rows = [
        json!({"line": 1, "fields": ["a", "b"], "until": 1}),
        json!({"line": 2, "fields": ["1", "x,\"y\"\nz"], "until": 3}),
        json!({"line": 5, "fields": ["2", "c"], "until": 5}),
        json!({"line": 6, "fields": ["", ""], "until": 6}),
        json!({"line": 7, "fields": ["3", "q"], "until": 7}),
    ];
    let read = console.page.eval(CSV);
    let read: Vec<Value> = read
        .as_array()
        .expect("texts")
        .iter()
        .map(|text| serde_json::from_str(text.as_str().expect("a text")).expect("JSON"))
        .collect();
    assert_eq!(read, [json!(rows)], "in pieces of any size");
    let exported = json!(["'=1", "'+1", "'-1", "'@x", "'\tx", "''=1", "'ann", "ann", ""]);
    assert_eq!(console.page.eval(FORMULAS), json!([exported, true]));
    assert_eq!(
        console.page.eval(DIGESTS),
        json!([
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
        ])
    );
    let counts = json!([["1", 4], ["2", 9], ["Infinity", 10]]);
    assert_eq!(console.page.eval(HISTOGRAMS), json!([7.5, 3, counts, [0, 5, 6], 1.6, "Infinity", null]));
    let written = [
        "−9 223 372 036 854 775 808",
        "1 234.5",
        "–",
        "inf",
        "1.5 KiB",
        "12 B",
        "250 µs",
        "12.5 ms",
        "1 d 2 h",
        "> 10 s",
        "12.3 k",
        "0.05",
        "99.96 %",
    ];
    assert_eq!(console.page.eval(NUMBERS), json!(written));
    let slow = json!([["warn", "HTTP is slow: p99 is 1.5 s", "#/server"]]);
    assert_eq!(console.page.eval(ROUTES), json!([[["/a", [4, 5]]], [], slow, []]));
    assert_eq!(
        console.page.eval(PAYOUTS),
        json!([1001, true, ["7 007 KRW paid"], ["at least 7 000 KRW paid"]])
    );
    let messages = json!([true, true, [true, false, true], ["To be undone", "Of the next page"]]);
    assert_eq!(console.page.eval(MESSAGES), messages);
    let windows = json!(["Asia/Seoul", "Europe/Paris", null, "Europe/Paris"]);
    let names = json!(["Week of 21 Nov 2026, 18:29", "sprint from 23 Nov 2026", "All time", "x"]);
    let times = json!([names, "28 Nov 2026, 14:03", "28 Nov 2026, 14:03 GMT+9", true, true, "–", windows]);
    assert_eq!(console.page.eval(TIMES), times);
    assert_eq!(console.page.eval(NEEDS), json!([21, "2 more", "#/?needs=all", 22, false]));
    assert_eq!(console.page.eval(AXES), json!(["100.0 %", "2"]));
    assert_eq!(console.page.eval(STAFF), json!([false, true]));
    assert_eq!(console.page.eval(LISTS), json!([["newer"], "newer"]));
    assert_eq!(console.page.eval(UNDO), json!([true, false]));
    assert_eq!(console.page.eval(MEMBERS), json!([50, 40, 30]));
    let more = "arcade: All time (9), Week of 23 Nov 2026 (7), 3 more";
    assert_eq!(console.page.eval(REMOVED), json!(["arcade: All time (9)", more, null]));
    console.end();
}

#[test]
fn what_can_be_undone_or_found_is_not_lost() {
    let mut console = Console::empty();
    let seen =
        json!([[0, []], [0, []], [1, ["Inside"]], [2, ["Before", "Inside"]], [2, ["Before", "Inside"]]]);
    assert_eq!(console.page.eval(UNDO_UNDER_A_DIALOG), seen);
    let first = json!([["restore a", "restore b"], true]);
    assert_eq!(console.page.eval(UNDO_OF_BANS), json!([first, [["restore b"], false]]));
    assert_eq!(console.page.eval(SEARCHES), json!([[10, true], 15, true]));
    console.end();
}

#[test]
fn a_score_of_64_bits_is_shown_to_the_last_digit() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    client.put("/v1/leaderboards/large", &json!({})).expect(201);
    for (player, score) in [("most", i64::MAX), ("least", i64::MIN), ("odd", 9_007_199_254_740_993)] {
        client.post("/v1/leaderboards/large/scores", &json!({"player": player, "score": score})).expect(200);
    }
    console.show("#/boards/large?player=most");
    console.sees_row(&["1", "most", "9 223 372 036 854 775 807"]);
    console.sees_row(&["2", "odd", "9 007 199 254 740 993"]);
    console.sees_row(&["3", "least", "−9 223 372 036 854 775 808"]);
    console.page.resize(360, 780, true);
    console.check("large scores on a phone");
    console.picture("board-large-phone");
    console.end();
}
