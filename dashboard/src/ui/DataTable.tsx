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
import { type CSSProperties, type KeyboardEvent, useEffect, useRef } from "react";
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

interface Props<T> {
  /** What the table lists, for screen readers. */
  label: string;
  rows: readonly T[];
  columns: ColumnDef<T, unknown>[];
  rowKey: (row: T) => string;
  visibility?: VisibilityState;
  sorting?: Sorting;
  onSort?: (sorting: Sorting) => void;
  /** Opens a row: Enter, or a click beside its links. */
  onOpen?: (row: T) => void;
  /** The end of the rows is near: the next page may be fetched. */
  onNearEnd?: () => void;
  isSelected?: (row: T) => boolean;
  /** Text under the last row, such as "1,000 of about 1,200,000 jobs". */
  footer?: string;
  /** Grows with its rows up to this height; without it the table fills its place. */
  maxHeight?: string;
}

const ROW_PX = 34;
const NEAR_ROWS = 20;

/** A table of which only the visible rows exist: any number of rows scrolls smoothly. */
export function DataTable<T>(props: Props<T>) {
  const { label, rows, columns, rowKey, visibility, onNearEnd, maxHeight } = props;
  const table = useReactTable({
    data: rows as T[],
    columns,
    getCoreRowModel: getCoreRowModel(),
    getRowId: rowKey,
    manualSorting: true,
    state: { columnVisibility: visibility ?? {} },
  });
  const scroller = useRef<HTMLDivElement>(null);
  const modelRows = table.getRowModel().rows;
  const virtual = useVirtualizer({
    count: modelRows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  const isNearEnd = modelRows.length > 0 && last >= modelRows.length - NEAR_ROWS;
  const near = useRef(onNearEnd);
  near.current = onNearEnd;
  // biome-ignore lint/correctness/useExhaustiveDependencies: more rows may mean the end is near again.
  useEffect(() => {
    if (isNearEnd) near.current?.();
  }, [isNearEnd, modelRows.length]);

  const tracks = table
    .getVisibleLeafColumns()
    .map((column) => column.columnDef.meta?.width ?? "minmax(80px, 1fr)");
  const layout = { "--tracks": tracks.join(" "), maxHeight } as CSSProperties;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <div className={styles.scroller} ref={scroller} style={layout} tabIndex={0} data-table>
      <div
        role="table"
        aria-label={label}
        aria-rowcount={modelRows.length + 1}
        className={styles.table}
      >
        <HeaderRow table={table} sorting={props.sorting} onSort={props.onSort} />
        <div role="rowgroup" className={styles.body} style={{ height: virtual.getTotalSize() }}>
          {shown.map((item) => {
            const row = modelRows[item.index];
            if (!row) return null;
            return (
              <BodyRow
                key={row.id}
                row={row}
                index={item.index}
                top={item.start}
                selected={props.isSelected?.(row.original) ?? false}
                onOpen={props.onOpen}
              />
            );
          })}
        </div>
      </div>
      {props.footer && <p className={styles.footer}>{props.footer}</p>}
    </div>
  );
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

interface RowProps<T> {
  row: Row<T>;
  index: number;
  top: number;
  selected: boolean;
  onOpen?: (row: T) => void;
}

function BodyRow<T>({ row, index, top, selected, onOpen }: RowProps<T>) {
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
        const inside = (event.target as HTMLElement).closest("a, button, input, label");
        if (!inside && !window.getSelection()?.toString()) onOpen?.(row.original);
      }}
    >
      {row.getVisibleCells().map((cell) => (
        <div
          key={cell.id}
          role="cell"
          className={styles.cell}
          data-align={cell.column.columnDef.meta?.align}
        >
          {flexRender(cell.column.columnDef.cell, cell.getContext())}
        </div>
      ))}
    </div>
  );
}
