/** The place in the header where the page is moved to another time; see `useAsOf`. */
export function TimeTravel() {
  return null;
}
