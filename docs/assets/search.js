// Search in a site that was opened as files. There a browser gives no page the right to fetch the index or to start a
// worker, so that the search of the theme hides itself; this one reads an index that was loaded as a script.
(function () {
  if (location.protocol !== "file:" || !window.siteIndex) return;
  const most = 30;
  const root = new URL(window.siteIndex.root, document.currentScript.src);
  const entries = window.siteIndex.docs.map(function (doc) {
    return { doc: doc, title: doc.title.toLowerCase(), text: doc.text.toLowerCase() };
  });

  function score(entry, words, phrase) {
    let sum = entry.title.includes(phrase) ? 40 : 0;
    for (const word of words) {
      const inTitle = entry.title.includes(word), inText = entry.text.includes(word);
      if (!inTitle && !inText) return 0;
      sum += (inTitle ? 10 : 0) + (inText ? 1 : 0) + (entry.title === word ? 20 : 0);
    }
    return sum;
  }

  function found(asked) {
    const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return entries
      .map(function (entry) { return { entry: entry, score: score(entry, words, words.join(" ")) }; })
      .filter(function (one) { return one.score > 0; })
      .sort(function (one, other) { return other.score - one.score; })
      .map(function (one) { return one.entry.doc; });
  }

  function item(doc, asked) {
    const line = document.createElement("li"), link = document.createElement("a"), title = document.createElement("h2");
    const text = document.createElement("p"), word = asked.toLowerCase().split(/\s+/)[0];
    const start = Math.max(0, doc.text.toLowerCase().indexOf(word) - 40);
    line.className = "md-search-result__item";
    link.className = "md-search-result__link";
    link.href = new URL(doc.location, root).href;
    title.textContent = doc.title;
    text.textContent = (start ? "… " : "") + doc.text.slice(start, start + 160);
    const article = document.createElement("article");
    article.className = "md-search-result__article md-typeset";
    article.append(title, text);
    link.append(article);
    line.append(link);
    return line;
  }

  window.addEventListener("load", function () {
    const box = document.querySelector("[data-md-component=search]");
    const input = document.querySelector("[data-md-component=search-query]");
    const result = document.querySelector("[data-md-component=search-result]");
    const toggle = document.querySelector("[data-md-toggle=search]");
    if (!box || !input || !result || !toggle) return;
    const meta = result.querySelector(".md-search-result__meta"), list = result.querySelector("ol");
    box.hidden = false;
    function show() {
      const all = found(input.value);
      list.replaceChildren.apply(list, all.slice(0, most).map(function (doc) { return item(doc, input.value); }));
      meta.textContent = all.length ? all.length + (all.length === 1 ? " result" : " results") : input.value ? "nothing found" : "type to search";
    }
    const asked = new URLSearchParams(location.search).get("q"); // an address with words to search for
    if (asked) { input.value = asked; toggle.checked = true; }
    show();
    input.addEventListener("focus", function () { toggle.checked = true; });
    input.addEventListener("input", show);
    document.addEventListener("keydown", function (event) {
      if (event.key === "Escape") { toggle.checked = false; input.blur(); }
    });
  });
})();
