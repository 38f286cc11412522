import {
  type ColumnDef,
  flexRender,
  getCoreRowModel,
  type Row,
  type RowData,
  useReactTable,
  type VisibilityState,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type PointerEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
} from "react";
import styles from "./DataTable.module.css";
import { Icon } from "./Icon";

declare module "@tanstack/react-table" {
  interface ColumnMeta<TData extends RowData, TValue> {
    /** The width of the column as a track of a grid, such as "80px" or "minmax(120px, 2fr)". */
    width?: string;
    align?: "right";
    /** The server can sort by this column. */
    sortKey?: string;
    /** Left out on narrow windows. */
    wideOnly?: boolean;
    /** The types of row and value, which only declare this interface's parameters. */
    _types?: [TData, TValue];
  }
}

export interface Sorting {
  key: string;
  descending: boolean;
}

/** Rows of which only those in sight are needed: undefined has not been loaded yet. */
export interface SparseRows<T> {
  length: number;
  at: (index: number) => T | undefined;
  /** Why a row is not there; without it, it is being loaded. */
  whyMissing?: (index: number) => string | undefined;
}

interface Props<T> {
  /** What the table lists, for screen readers. */
  label: string;
  rows: SparseRows<T>;
  columns: ColumnDef<T, unknown>[];
  rowKey: (row: T) => string;
  visibility?: VisibilityState;
  sorting?: Sorting;
  onSort?: (sorting: Sorting) => void;
  /** Opens a row: Enter, or a click beside its links. */
  onOpen?: (row: T) => void;
  /** The end of the rows is near: the next page may be fetched. */
  onNearEnd?: () => void;
  /** Other rows are in sight: what is missing may be fetched. */
  onSight?: (first: number, last: number) => void;
  isSelected?: (row: T) => boolean;
  /** Text under the last row, such as "1,000 of about 1,200,000 jobs". */
  footer?: ReactNode;
  /** Grows with its rows up to this height; without it the table fills its place. */
  maxHeight?: string;
}

const ROW_PX = 34;
const NEAR_ROWS = 40;
const OVERSCAN = 8;

/** A table of which only the visible rows exist: any number of rows scrolls smoothly. */
export function DataTable<T>(props: Props<T>) {
  const { label, rows, columns, rowKey, visibility, maxHeight } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
  });
  const items = virtual.getVirtualItems();
  const shown = items.map(({ index, start }) => ({ index, start, value: rows.at(index) }));
  // The model holds what is in sight: one of all rows would be made anew with every page.
  const table = useReactTable({
    data: useSame(shown.flatMap(({ value }) => (value === undefined ? [] : [value]))),
    columns,
    getCoreRowModel: getCoreRowModel(),
    getRowId: rowKey,
    manualSorting: true,
    autoResetAll: false,
    state: { columnVisibility: visibility ?? {} },
  });
  const models = table.getRowModel().rowsById;
  useSight(props, items[0]?.index ?? 0, items.at(-1)?.index ?? 0);

  const tracks = table
    .getVisibleLeafColumns()
    .map((column) => column.columnDef.meta?.width ?? "minmax(80px, 1fr)")
    .join(" ");
  const layout = useMemo(
    () => ({ "--tracks": tracks, maxHeight }) as CSSProperties,
    [tracks, maxHeight],
  );
  const opened = useRef(props.onOpen);
  opened.current = props.onOpen;
  const open = useCallback((row: T) => opened.current?.(row), []);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <div className={styles.scroller} ref={scroller} style={layout} tabIndex={0} data-table>
      <div role="table" aria-label={label} aria-rowcount={rows.length + 1} className={styles.table}>
        <HeaderRow table={table} sorting={props.sorting} onSort={props.onSort} />
        <div role="rowgroup" className={styles.body} style={{ height: virtual.getTotalSize() }}>
          {shown.map(({ index, start, value }) => {
            const row = value === undefined ? undefined : models[rowKey(value)];
            if (!row) {
              const why = rows.whyMissing?.(index) ?? "…";
              return <MissingRow key={`missing ${index}`} index={index} top={start} why={why} />;
            }
            return (
              <BodyRow
                key={row.id}
                row={row as Row<unknown>}
                value={value}
                columns={columns as readonly unknown[]}
                tracks={tracks}
                index={index}
                top={start}
                selected={props.isSelected?.(row.original) ?? false}
                onOpen={props.onOpen ? (open as (row: unknown) => void) : undefined}
              />
            );
          })}
        </div>
      </div>
      {props.footer && <div className={styles.footer}>{props.footer}</div>}
    </div>
  );
}

/** Returns the list of before while it has the same items: a new one makes a new model. */
function useSame<T>(items: T[]): T[] {
  const kept = useRef(items);
  const before = kept.current;
  const isSame = before.length === items.length && items.every((item, at) => item === before[at]);
  if (!isSame) kept.current = items;
  return kept.current;
}

/** Says which rows are in sight, and when their end is near. */
function useSight<T>({ rows, onNearEnd, onSight }: Props<T>, first: number, last: number): void {
  const isNearEnd = rows.length > 0 && last >= rows.length - NEAR_ROWS;
  const near = useRef(onNearEnd);
  near.current = onNearEnd;
  // biome-ignore lint/correctness/useExhaustiveDependencies: more rows may mean the end is near again.
  useEffect(() => {
    if (isNearEnd) near.current?.();
  }, [isNearEnd, rows.length]);
  useEffect(() => onSight?.(first, last), [onSight, first, last]);
}

interface HeaderProps<T> {
  table: ReturnType<typeof useReactTable<T>>;
  sorting?: Sorting;
  onSort?: (sorting: Sorting) => void;
}

function HeaderRow<T>({ table, sorting, onSort }: HeaderProps<T>) {
  return (
    <div role="rowgroup" className={styles.head}>
      <div role="row" className={styles.row}>
        {table.getLeafHeaders().map((header) => {
          const meta = header.column.columnDef.meta;
          const text = flexRender(header.column.columnDef.header, header.getContext());
          const key = meta?.sortKey;
          const isSorted = key !== undefined && sorting?.key === key;
          const order = isSorted ? (sorting.descending ? "descending" : "ascending") : undefined;
          return (
            <div
              key={header.id}
              role="columnheader"
              aria-sort={key && onSort ? (order ?? "none") : undefined}
              className={styles.cell}
              data-align={meta?.align}
            >
              {key && onSort ? (
                <button
                  type="button"
                  className={styles.sort}
                  onClick={() => onSort({ key, descending: isSorted ? !sorting.descending : true })}
                >
                  {text}
                  {isSorted && <Icon name={sorting.descending ? "down" : "up"} size={12} />}
                </button>
              ) : (
                text
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface RowProps {
  row: Row<unknown>;
  value: unknown;
  columns: readonly unknown[];
  tracks: string;
  index: number;
  top: number;
  selected: boolean;
  onOpen?: (row: unknown) => void;
}

/** A row is rendered again when its value, its place or the columns change, not on every scroll. */
const BodyRow = memo(function BodyRow({ row, index, top, selected, onOpen }: RowProps) {
  function onKeyDown(event: KeyboardEvent<HTMLDivElement>): void {
    if (event.key === "Enter" && event.target === event.currentTarget) onOpen?.(row.original);
    const step = event.key === "ArrowDown" || event.key === "j" ? 1 : 0;
    const back = event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
    if (!step && !back) return;
    const target = event.currentTarget.parentElement?.querySelector<HTMLElement>(
      `[aria-rowindex="${index + 2 + step + back}"]`,
    );
    if (!target) return;
    event.preventDefault();
    target.focus();
  }
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={selected || undefined}
      tabIndex={onOpen ? 0 : undefined}
      className={`${styles.row} ${styles.bodyRow} ${onOpen ? styles.opens : ""}`}
      style={{ transform: `translateY(${top}px)` }}
      onKeyDown={onKeyDown}
      onClick={(event) => {
        if (!onOpen || isControl(event.target) || window.getSelection()?.toString()) return;
        if (event.ctrlKey || event.metaKey) openInTab(event.currentTarget);
        else onOpen(row.original);
      }}
      onAuxClick={(event) => {
        const isMiddle = event.button === 1;
        if (onOpen && isMiddle && !isControl(event.target)) openInTab(event.currentTarget);
      }}
    >
      {row.getVisibleCells().map((cell) => (
        <div
          key={cell.id}
          role="cell"
          dir="auto" // the beginning of a name from right to left is not what is cut off
          className={styles.cell}
          data-align={cell.column.columnDef.meta?.align}
          onPointerEnter={tellWhole}
        >
          {flexRender(cell.column.columnDef.cell, cell.getContext())}
        </div>
      ))}
    </div>
  );
}, isSameRow);

function isControl(target: EventTarget): boolean {
  return (target as HTMLElement).closest("a, button, input, label") !== null;
}

/** Opens what a row is about in a tab of its own: its first link leads there too. */
function openInTab(row: HTMLElement): void {
  const link = row.querySelector("a");
  if (link) window.open(link.href, "_blank", "noopener");
}

/** Shows the whole text of a cell that is cut off, as its title. */
function tellWhole(event: PointerEvent<HTMLElement>): void {
  const cell = event.currentTarget;
  const isCut = [cell, ...cell.querySelectorAll("*")].some(
    (one) => one.scrollWidth > one.clientWidth,
  );
  cell.title = isCut ? Array.from(cell.childNodes, (one) => one.textContent).join(" ") : "";
}

/** The model of a row is made anew with what is in sight; what it shows is in the others. */
function isSameRow(before: RowProps, after: RowProps): boolean {
  const { row: _, ...rest } = after;
  return Object.entries(rest).every(([name, value]) => before[name as keyof RowProps] === value);
}

function MissingRow({ index, top, why }: { index: number; top: number; why: string }) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={`${styles.row} ${styles.bodyRow}`}
      style={{ transform: `translateY(${top}px)` }}
    >
      <div role="cell" className={`${styles.cell} ${styles.missing}`}>
        {why}
      </div>
    </div>
  );
}
