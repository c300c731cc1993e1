// What is wrong with a page for those who do not see it, see it badly, or use no mouse. Answers with a list of
// `rule: CSS path: what is wrong`.

const faults = [];
const all = selector => [...document.querySelectorAll(selector)];
const fault = (rule, element, says) => faults.push(`${rule}: ${path(element)}: ${says}`);

function path(element) {
    const steps = [];
    for (let at = element; at && at !== document.documentElement; at = at.parentElement) {
        if (at.id && all(`#${CSS.escape(at.id)}`).length === 1) {
            steps.unshift(`#${CSS.escape(at.id)}`);
            break;
        }
        const twins = [...at.parentElement.children].filter(other => other.localName === at.localName);
        steps.unshift(twins.length > 1 ? `${at.localName}:nth-of-type(${twins.indexOf(at) + 1})` : at.localName);
    }
    return steps.join(' > ') || 'html';
}

function document_itself() {
    const root = document.documentElement;
    if (!root.lang) fault('lang', root, 'the page does not tell its language');
    if (!plain(document.title)) fault('title', root, 'the page has no title');
    const viewport = document.querySelector('meta[name=viewport]')?.content ?? '';
    if (!viewport.includes('width=device-width')) fault('viewport', root, 'the page does not fit itself to a phone');
    if (/user-scalable=no|maximum-scale/.test(viewport)) fault('viewport', root, 'the page cannot be magnified');
}

function headings() {
    const shownOnes = all('h1, h2, h3, h4, h5, h6').filter(shown);
    const first = shownOnes.filter(heading => heading.localName === 'h1');
    if (first.length !== 1) fault('h1', document.body, `${first.length} headings of the first level instead of one`);
    let last = 0;
    for (const heading of shownOnes) {
        const level = Number(heading.localName[1]);
        if (level > last + 1) fault('headings', heading, `level ${level} follows level ${last}`);
        if (!named(heading)) fault('headings', heading, 'the heading is empty');
        last = level;
    }
}

function landmarks() {
    const banners = all('header').filter(header => !header.closest('main, article, section, aside, nav'));
    if (banners.length !== 1) fault('landmarks', document.body, `${banners.length} headers of the page instead of one`);
    if (all('main').filter(shown).length !== 1) fault('landmarks', document.body, 'not exactly one main part');
    const navs = all('nav').filter(shown);
    if (navs.length === 0) fault('landmarks', document.body, 'no navigation');
    if (navs.length > 1) {
        navs.filter(nav => !nav.matches('[aria-label], [aria-labelledby]'))
            .forEach(nav => fault('landmarks', nav, 'one of several navigations, without a name'));
    }
    const first = document.querySelector(`a[href], button, summary, ${CONTROLS}`);
    const hash = first?.getAttribute('href') ?? '';
    if (!/^#./.test(hash)) fault('skip-link', first ?? document.body, 'the first stop of Tab does not lead to the content');
    else if (!document.getElementById(hash.slice(1))) fault('skip-link', first, `nothing has the id of ${hash}`);
}

function names() {
    for (const control of all(CONTROLS).filter(shown)) {
        if (!named(control)) fault('label', control, 'the field has no label');
    }
    for (const thing of all('a[href], button, summary, [role=button], [role=link]').filter(shown)) {
        if (!named(thing)) fault('name', thing, 'the link or button has no name');
    }
    for (const image of all('img:not([alt])')) fault('image', image, 'the image has no alternative text');
    for (const svg of all('svg').filter(svg => shown(svg) && !svg.closest('[aria-hidden=true]') && !svg.parentElement.closest('svg'))) {
        const role = svg.getAttribute('role');
        if (['none', 'presentation'].includes(role)) continue;
        if (!role) fault('image', svg, 'the drawing has no role, nor is it hidden from screen readers');
        else if (!named(svg)) fault('image', svg, 'the drawing has no name');
    }
    for (const table of all('table:not([role=none], [role=presentation])')) {
        if (!table.querySelector('th')) fault('table', table, 'the table has no header cell');
    }
    const scopes = '[scope=col], [scope=row], [scope=colgroup], [scope=rowgroup]';
    for (const cell of all(`th:not(${scopes})`)) fault('table', cell, 'the header cell has no scope');
}

function order() {
    const seen = new Set();
    for (const element of all('[id]')) {
        if (seen.has(element.id)) fault('id', element, `another element has the id \`${element.id}\``);
        seen.add(element.id);
    }
    all('[tabindex]').filter(element => element.tabIndex > 0)
        .forEach(element => fault('tabindex', element, 'it jumps the queue of Tab'));
    all('[aria-hidden=true] :is(a[href], button, summary, input, select, textarea)').filter(element => shown(element) && element.tabIndex >= 0)
        .forEach(element => fault('hidden', element, 'Tab stops at what is hidden from screen readers'));
    all('a[target=_blank]').filter(link => !/\bno(opener|referrer)\b/.test(link.rel))
        .forEach(link => fault('blank', link, 'a new window without rel=noopener'));
}

function overflow() {
    const [wide, room] = [document.scrollingElement.scrollWidth, window.innerWidth];
    if (wide <= room) return;
    const scrolls = element => element && element !== document.body && element !== document.documentElement
        && (getComputedStyle(element).overflowX !== 'visible' || scrolls(element.parentElement));
    const out = all('body *').filter(element => element.getBoundingClientRect().right > room + 0.5)
        .filter(element => !scrolls(element.parentElement));
    fault('overflow', out.at(-1) ?? document.body, `the page is ${wide} px wide where ${room} px are`);
}

// A link in the middle of a text that differs by its colour alone is none for who sees no colours.
function links() {
    const speaks = node => node.nodeType === Node.TEXT_NODE && /\p{L}{2}/u.test(node.data);
    for (const link of all('p a[href], .note a[href], .banner a[href], .impact a[href]').filter(shown)) {
        if (![...link.parentElement.childNodes].some(speaks) || link.matches('.button')) continue;
        const style = getComputedStyle(link);
        if (style.textDecorationLine !== 'underline' && style.borderBottomStyle === 'none') {
            fault('link', link, 'a link in a text that only its colour tells');
        }
    }
}

// What fingers are to meet: a summary, a button or a link without a word is at least 24 px wide and high.
function fingers() {
    const things = [...all('summary, button'), ...all('a[href]').filter(link => !plain(link.textContent) && !link.closest('svg'))];
    for (const thing of things.filter(shown)) {
        if (thing.matches('.quiet')) continue;
        const { width, height } = thing.getBoundingClientRect();
        if (width < 24 || height < 24) fault('size', thing, `${Math.floor(width)} x ${Math.floor(height)} px, 24 are needed`);
    }
}

// What scrolls must do so by keyboard; and on a desk no column of a table may hide beyond the edge.
function scrolling() {
    const reached = 'a[href], button, input, select, textarea, summary, [tabindex]';
    for (const box of all('main *').filter(shown)) {
        const { overflowX, overflowY } = getComputedStyle(box);
        const across = /auto|scroll/.test(overflowX) && box.scrollWidth > box.clientWidth + 1;
        const down = /auto|scroll/.test(overflowY) && box.scrollHeight > box.clientHeight + 1;
        if (!across && !down) continue;
        if (!box.matches('[tabindex]') && !box.matches('textarea') && !box.querySelector(reached)) {
            fault('scroll', box, 'it scrolls, and no key gets there');
        }
        if (across && window.innerWidth >= 1280 && box.querySelector('table')) {
            fault('scroll', box, `the table is ${box.scrollWidth} px wide where ${box.clientWidth} px are`);
        }
    }
}

document_itself();
headings();
landmarks();
names();
order();
overflow();
links();
fingers();
scrolling();
contrasts(fault);
return faults;
