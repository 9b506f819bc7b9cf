// Brings the page up to date every ten seconds, while somebody sees it. Without JavaScript, a refresh does.
setInterval(async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("main").replaceWith(page.querySelector("main"));
  } catch {
    document.querySelector("#stale").hidden = false;
  }
}, 10_000);
