// Finds what a person means. Each function answers with every element that fits best.

const CLICKABLE = `a[href], button, summary, ${BUTTONS}, input[type=checkbox], input[type=radio],`
    + ' [role=button], [role=link], [role=tab], [role=menuitem], [role=switch]';

// While a modal dialog is open, nothing else can be reached.
const reachable = () => document.querySelector('dialog:modal') ?? document;

function matching(selector) {
    try {
        return [...document.querySelectorAll(selector)];
    } catch {
        return [];
    }
}

// By the whole name, else by a selector, else by a part of the name.
function meant(candidates, wanted) {
    const things = [...reachable().querySelectorAll(candidates)].filter(shown)
        .map(element => ({ element, names: [named(element), plain(element.innerText)] }));
    const those = fits => things.filter(({ names }) => names.some(fits)).map(({ element }) => element);
    const whole = those(name => name === plain(wanted));
    if (whole.length > 0) return whole;
    const selected = matching(wanted).filter(element => shown(element) && reachable().contains(element));
    return selected.length > 0 ? selected : those(name => name.includes(plain(wanted)));
}

const clickable = wanted => meant(CLICKABLE, wanted);

const field = label => meant(CONTROLS, label);

// An option of a list, or one of the round buttons of a group.
function option(label, wanted) {
    const groups = [...reachable().querySelectorAll('fieldset, [role=radiogroup]')].filter(group => {
        const legend = group.querySelector(':scope > legend');
        return shown(group) && plain(legend ? textOf(legend) : named(group)) === plain(label);
    });
    // Also by what it sends, where what it says has more than its name.
    const called = element => [element.label ?? named(element), element.value].some(text => plain(text) === plain(wanted));
    const round = groups.flatMap(group => [...group.querySelectorAll('input[type=radio]')]);
    if (round.length > 0) return round.filter(radio => named(radio) === plain(wanted));
    return field(label).flatMap(list => [...(list.options ?? [])]).filter(called);
}
