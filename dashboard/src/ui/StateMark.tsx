import type { ReactElement } from "react";
import type { Mark } from "./states";

const SHAPES: Record<Mark, ReactElement> = {
  ring: <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" strokeWidth="1.6" />,
  dot: <circle cx="6" cy="6" r="4.2" fill="currentColor" />,
  half: (
    <>
      <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" strokeWidth="1.6" />
      <path d="M6 2a4 4 0 0 1 0 8z" fill="currentColor" />
    </>
  ),
  check: (
    <path
      d="M2.4 6.4 5 9l4.8-6"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
    />
  ),
  cross: (
    <path
      d="m3 3 6 6M9 3 3 9"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
    />
  ),
  bar: <path d="M2.5 6h7" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />,
  pause: (
    <path d="M4.2 3v6M7.8 3v6" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" />
  ),
  triangle: (
    <path
      d="M6 2.2 10.2 9.6H1.8z"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinejoin="round"
    />
  ),
};

/** The shape of a state; the words beside it say the same. */
export function StateMark({ mark }: { mark: Mark }) {
  return (
    <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" focusable="false">
      {SHAPES[mark]}
    </svg>
  );
}
