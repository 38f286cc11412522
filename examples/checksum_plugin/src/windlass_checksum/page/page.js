// Lists the newest checksums. It calls the API with the session of whoever is signed in.

const MAX_ROWS = 50;

function cell(row, content) {
  const made = document.createElement("td");
  made.append(content);
  row.append(made);
}

function show(jobs) {
  const body = document.querySelector("tbody");
  for (const job of jobs) {
    const row = document.createElement("tr");
    const link = document.createElement("a");
    link.href = `../../jobs/${job.id}`;
    link.textContent = job.id;
    cell(row, link);
    cell(row, job.name ?? "");
    cell(row, job.state);
    body.append(row);
  }
  document.querySelector("table").hidden = jobs.length === 0;
}

async function load() {
  const message = document.querySelector("#message");
  try {
    const answer = await fetch(`../../api/v1/jobs?task=checksum.file&limit=${MAX_ROWS}`);
    const found = await answer.json();
    if (!answer.ok) {
      throw new Error(found.error?.message ?? answer.statusText);
    }
    show(found.jobs);
    message.textContent = found.jobs.length ? "" : "No checksums yet: run windlass checksum FILE.";
  } catch (error) {
    message.textContent = `Cannot load the jobs: ${error.message}`;
  }
}

void load();
