/** Line icons, 16 × 16, drawn for this page. */
const PATHS = {
  overview: "M2.5 9.5h4v4h-4zM9.5 2.5h4v11h-4zM2.5 2.5h4v4h-4z",
  jobs: "M2.5 4h11M2.5 8h11M2.5 12h7",
  workflows: "M2.5 3h4v3.5h-4zM9.5 9.5h4V13h-4zM4.5 6.5v5h5",
  workers: "M2.5 3h11v4h-11zM2.5 9.5h11v4h-11zM5 5h.01M5 11.5h.01",
  pools: "M8 2 14 5 8 8 2 5zM2 8l6 3 6-3M2 11l6 3 6-3",
  queues: "M2.5 3v10M6 3v10M9.5 3v10M13 5.5v5",
  schedules: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.5V8l2.5 1.5",
  templates: "M3.5 2h6L13 5.5V14H3.5zM9 2v4h4",
  namespaces: "M2 4.5h4.5L8 6h6v7H2z",
  tokens: "M10 9a3.5 3.5 0 1 0-3.3-2.3L2 11.5V14h2.5v-1.8h1.8v-1.8h1.2z",
  audit: "M4 2h8v12l-2-1.3L8 14l-2-1.3L4 14zM6 5.5h4M6 8.5h4",
  fuzzing:
    "M8 5a3 3 0 0 1 3 3v2a3 3 0 0 1-6 0V8a3 3 0 0 1 3-3zM6 5 4.5 3M10 5l1.5-2M5 8.5H2M11 8.5h3M5 11l-2.5 2M11 11l2.5 2",
  plugin: "M6 2v3.5M10 2v3.5M4 5.5h8V8a4 4 0 0 1-8 0zM8 12v2.5",
  questions:
    "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM6.2 6.3a1.9 1.9 0 1 1 2.6 2c-.6.3-.8.6-.8 1.2M8 11.5h.01",
  submit: "M8 3v10M3 8h10",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3.05 3.05l1.06 1.06M11.9 11.9l1.06 1.06M12.95 3.05l-1.06 1.06M4.1 11.9l-1.06 1.06",
  moon: "M13.5 9.6A6 6 0 1 1 6.4 2.5a4.7 4.7 0 0 0 7.1 7.1z",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "m3.5 3.5 9 9M12.5 3.5l-9 9",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "m3 8.5 3.2 3.2L13 4.5",
  down: "m4 6 4 4 4-4",
  up: "m4 10 4-4 4 4",
  right: "m6 4 4 4-4 4",
  left: "m10 4-4 4 4 4",
  refresh: "M13.5 8a5.5 5.5 0 1 1-1.7-4M13.5 2v3h-3",
  external: "M9.5 2.5h4v4M13.5 2.5 7.5 8.5M11.5 9.5v4h-9v-9h4",
  filter: "M2 3.5h12L9.5 8.7v4.8L6.5 12V8.7z",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  keyboard: "M1.5 4h13v8h-13zM4 6.5h.01M6.7 6.5h.01M9.3 6.5h.01M12 6.5h.01M4.5 9.5h7",
  signOut: "M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6",
  warning: "M8 2 14.5 13.5h-13zM8 6.5v3M8 11.6h.01",
  fullScreen: "M9.5 2.5h4v4M13.5 2.5 9 7M6.5 13.5h-4v-4M2.5 13.5 7 9",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.3v3.7M8 5h.01",
  star: "m8 2 1.8 3.8 4.2.5-3.1 2.9.8 4.1L8 11.3l-3.7 2 .8-4.1L2 6.3l4.2-.5z",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.5V8l2.5 1.5",
  pause: "M5.5 3v10M10.5 3v10",
  play: "M4.5 2.5v11l8.5-5.5z",
} as const;

export type IconName = keyof typeof PATHS;

/** Shows an icon; the text or label beside it says what it means. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
