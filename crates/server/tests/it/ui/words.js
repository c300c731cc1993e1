// What things on a page are called. Stands before the other scripts.

const plain = text => (text ?? '').replace(/\s+/g, ' ').trim();

const shown = element => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });

const CONTROLS = 'input:not([type=hidden]), select, textarea';

const BUTTONS = 'input[type=submit], input[type=button], input[type=reset]';

// The text of an element as a screen reader tells it: pictures by their names, nothing that is hidden from it.
function textOf(element) {
    const parts = [...element.childNodes].map(node => {
        if (node.nodeType === Node.TEXT_NODE) return node.data;
        if (node.nodeType !== Node.ELEMENT_NODE || node.matches(`[aria-hidden=true], ${CONTROLS}`)) return '';
        if (node.matches('script, style, template')) return '';
        if (node.matches('img')) return ` ${node.alt} `;
        if (node.matches('svg')) return ` ${named(node)} `;
        return node.getAttribute('aria-label') ?? textOf(node);
    });
    return plain(parts.join(''));
}

// The accessible name, in the order in which browsers look for it.
function named(element) {
    const pointed = plain((element.getAttribute('aria-labelledby') ?? '').split(/\s+/)
        .map(id => document.getElementById(id)?.textContent).join(' '));
    const label = pointed || plain(element.getAttribute('aria-label'));
    if (label) return label;
    if (element.matches(BUTTONS)) return plain(element.value || element.type);
    if (element.matches(CONTROLS)) {
        return plain([...(element.labels ?? [])].map(textOf).join(' ')) || plain(element.title);
    }
    if (element.matches('img, input[type=image]')) return plain(element.alt) || plain(element.title);
    if (element.matches('svg')) return plain(element.querySelector(':scope > title')?.textContent);
    return textOf(element) || plain(element.title);
}
