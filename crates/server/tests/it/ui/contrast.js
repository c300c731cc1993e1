// Contrast of text as WCAG 2 computes it, level AA. What lies on a picture or a gradient is not judged.

const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const colours = new Map();

// Red, green and blue from 0 to 255 and opacity from 0 to 1, of whatever notation.
function colour(css) {
    if (!colours.has(css)) {
        pen.clearRect(0, 0, 1, 1);
        pen.fillStyle = css;
        pen.fillRect(0, 0, 1, 1);
        const [red, green, blue, opacity] = pen.getImageData(0, 0, 1, 1).data;
        colours.set(css, [red, green, blue, opacity / 255]);
    }
    return colours.get(css);
}

function over(above, below) {
    const opacity = above[3];
    if (opacity === 1) return above;
    if (!below) return null;
    return [0, 1, 2].map(part => above[part] * opacity + below[part] * (1 - opacity)).concat(1);
}

function paper() {
    const probe = document.createElement('span');
    probe.style.backgroundColor = 'Canvas';
    document.documentElement.append(probe);
    const found = colour(getComputedStyle(probe).backgroundColor);
    probe.remove();
    return found;
}

const backdrops = new Map();

// The colour behind the content of an element, or null if there is no single one.
function backdrop(element) {
    if (!backdrops.has(element)) {
        const style = element && getComputedStyle(element);
        const below = element ? (style.backgroundImage === 'none' ? backdrop(element.parentElement) : null) : paper();
        backdrops.set(element, element ? over(colour(style.backgroundColor), below) : below);
    }
    return backdrops.get(element);
}

// Shapes that were drawn before the text, where its middle is.
function painted(text) {
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    let below = backdrop(text.ownerSVGElement);
    for (const shape of text.ownerSVGElement.querySelectorAll('rect, circle, ellipse, polygon, path')) {
        const area = shape.getBoundingClientRect();
        const before = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
        const covers = area.left <= x && x <= area.right && area.top <= y && y <= area.bottom;
        const fill = getComputedStyle(shape).fill;
        if (before && covers && fill.startsWith('url')) below = null;
        else if (before && covers && fill !== 'none') below = over(colour(fill), below);
    }
    return below;
}

function luminance(rgb) {
    const [red, green, blue] = rgb.map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function ratio(one, other) {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
}

function judge(element, ink, fault) {
    const style = getComputedStyle(element);
    const below = element.ownerSVGElement ? painted(element) : backdrop(element);
    if (!below) return;
    let opacity = ink[3];
    for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const found = ratio(over([...ink.slice(0, 3), opacity], below), below);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const needed = large ? 3 : 4.5;
    if (found < needed) fault('contrast', element, `${found.toFixed(2)} : 1 where ${needed} : 1 is needed`);
}

function contrasts(fault) {
    const readable = element => {
        const box = element.getBoundingClientRect();
        // What is one pixel large is for screen readers only.
        return shown(element) && box.width > 1 && box.height > 1 && !element.closest(':disabled, [aria-disabled=true]');
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts = new Set();
    while (walker.nextNode()) {
        const holder = walker.currentNode.parentElement;
        if (plain(walker.currentNode.data) && !holder.matches('option, textarea')) texts.add(holder);
    }
    for (const element of [...texts].filter(readable)) {
        const style = getComputedStyle(element);
        judge(element, colour(element.ownerSVGElement ? style.fill : style.color), fault);
    }
    const written = 'input:not([type=checkbox], [type=radio], [type=range], [type=color], [type=image]), select, textarea';
    for (const control of [...document.querySelectorAll(written)].filter(readable)) {
        const style = getComputedStyle(control, control.value ? null : '::placeholder');
        if (control.value || control.placeholder) judge(control, colour(style.color), fault);
    }
}
